"use strict";
document.querySelectorAll("a[data-track]").forEach(a => a.rel = "noopener");
