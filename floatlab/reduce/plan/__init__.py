"""Orders of evaluation: plans, schedules, and the expression language for schedules."""
