"""What all tests share: no property is timed, for machines may be slow or busy."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
