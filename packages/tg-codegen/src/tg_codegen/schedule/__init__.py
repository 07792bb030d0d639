"""The scheduler: tensor graph in, kernel graphs in execution order out."""

from tg_codegen.schedule.create import create_schedule
from tg_codegen.schedule.errors import ScheduleError
from tg_codegen.schedule.model import Schedule
from tg_codegen.schedule.schedule_cache import clear_schedule_cache

__all__ = ["Schedule", "ScheduleError", "clear_schedule_cache", "create_schedule"]
