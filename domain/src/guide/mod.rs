//! Programme guides: where they come from, the channels that they name, and their output as XMLTV.

pub mod channel;
pub mod dvb;
pub mod generated;
pub mod index;
pub mod marks;
pub mod matching;
pub mod merge;
pub mod placeholders;
pub mod programme;
pub mod schedules_direct;
pub mod shift;
pub mod source;
pub mod state;
pub mod text_query;
pub mod words;
pub mod xmltv;
