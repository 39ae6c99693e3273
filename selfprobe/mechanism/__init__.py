"""Mechanisms of introspection (IntrospectBench, section 5): lens, attention, patching and induction
on open weights.
"""
