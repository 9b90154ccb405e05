"""What people are shown: values as texts, pictures as SVG, and both in notebooks."""
