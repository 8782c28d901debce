"""An evaluation for people and for other programs: tables in a terminal, an HTML page, JUnit's XML, JSON."""
