"""The pages: function views, one module per family."""
