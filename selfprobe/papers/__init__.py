"""The papers whose tables and figures are made again, one module a paper: a function for each
table, figure or quoted number, from logs or from the tables of probe runs.

    selfprobe paper introspectbench logs/paper003 --out out/paper003
"""
