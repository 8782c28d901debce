"""What the console's pages look like: templates, a style sheet, and scripts that no build makes.

A page's rows and cards are those of the report.
"""
