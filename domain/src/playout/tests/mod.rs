//! Tests of the playout: tables that read as sentences, and random schedules.

mod backoff;
mod deadlines;
mod lack;
mod life;
mod order;
mod random;
mod replan;
mod retry;
mod script;
mod silence;
mod start;
mod switch;
mod take_over;
