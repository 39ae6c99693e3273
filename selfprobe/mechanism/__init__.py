"""Mechanisms of introspection (paper 003, section 5): lens, attention, patching and induction on
open weights.
"""
