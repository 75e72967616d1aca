"""Sharing a grid between cores: the split (a frozen value), the kernel it gives, and the launch that picks it."""
