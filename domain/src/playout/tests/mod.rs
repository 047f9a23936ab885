//! The promises of the playout: tables that read as sentences, and random schedules.

mod deadlines;
mod life;
mod order;
mod random;
mod replan;
mod rest;
mod retry;
mod script;
mod start;
mod switch;
