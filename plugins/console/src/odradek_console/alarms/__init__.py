"""Alarms from the console itself, for those who run no Alertmanager."""
