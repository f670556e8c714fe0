"""Small trainings as people write them, each with the switches that the tests turn."""
