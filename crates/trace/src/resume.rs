//! Going on with a recording whose recorder was killed.
