"""`train network`: a network trained in several configurations, over seeds."""
