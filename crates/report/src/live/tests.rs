//! The view, drawn without a terminal.
