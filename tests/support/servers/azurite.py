"""Azurite: Azure's blob service."""
