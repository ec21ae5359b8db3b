"""The roles of the loop: who plans, who reviews the plan, who builds."""
