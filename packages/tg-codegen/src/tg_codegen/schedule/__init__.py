"""The scheduler: tensor graph in, kernel graphs in execution order out."""

from tg_codegen.schedule.create import Schedule, create_schedule
from tg_codegen.schedule.errors import ScheduleError

__all__ = ["Schedule", "ScheduleError", "create_schedule"]
