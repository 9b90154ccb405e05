"""`lakelog conflicts`: which jobs collide, and what would separate them."""
