"""Find out in which narrower formats a result was computed: the formats of its inputs, its sums, and its output."""
