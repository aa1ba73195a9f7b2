//! The tests of this crate in one program: linked once, they build in a fraction of the time.

mod compensation;
mod coverage;
mod coverage_of_lines;
mod coverage_of_long_memory;
mod coverage_of_numbers;
mod coverage_of_runs;
mod fleet;
mod known;
mod modes;
mod peaks;
mod peaks_of_machines;
mod probe;
mod runs_compared;
mod slow_begins;
mod slow_counts;
mod slow_edges;
mod slow_guards;
mod slow_joint;
mod slow_sim;
mod slow_stepped;
mod states;
mod threads;
mod two_clocks;
