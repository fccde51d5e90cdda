"""Compiled inner loops: integers and arrays in, arrays out."""
