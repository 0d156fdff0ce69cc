"""Servers that tests start on loopback."""
