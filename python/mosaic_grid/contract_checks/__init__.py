"""Contracts that a program checks itself before it does anything: what is checked, and how that is written."""
