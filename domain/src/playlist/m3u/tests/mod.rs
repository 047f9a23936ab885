//! Tests of the parser.

mod properties;
mod quirks;
