"""Cases with expectations, run side by side in one host, and compared with an earlier evaluation."""
