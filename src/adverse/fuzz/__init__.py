"""Fuzz campaigns: semantic mutations by the thousand, what they cost each SUT, and what failed."""
