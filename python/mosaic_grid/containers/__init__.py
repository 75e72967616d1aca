"""The containers a program is dumped in, a file each, and how they are told apart: by content, never by extension."""
