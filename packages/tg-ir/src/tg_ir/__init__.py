"""The language and the contracts of the tg compiler stack."""
