"""Scheduler, kernel lowering, optimiser and compile driver."""
