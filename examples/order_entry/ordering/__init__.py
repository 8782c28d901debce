"""Orders of a wholesaler, without a word about models: what is stored, what may be done with it, and how it is placed.

A module imports only modules to its left: `orders → matching → rules → storage, order_system → services`.
"""
