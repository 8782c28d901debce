"""What the console's pages look like: templates, a style sheet, and scripts that no build makes.

In: values for a template. Out: HTML; the static files. A page's rows and cards are those of the report.
"""
