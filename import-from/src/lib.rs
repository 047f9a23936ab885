//! Converts the records of another service, Dispatcharr, into those of this gateway, with a report.
//!
//! Pure: the rows of a database export, or the objects of a REST interface, become records and a [`Report`]. Nothing is
//! believed: ids may be absurd, references may lead nowhere, names and numbers may occur twice. Whatever cannot be
//! taken is reported with the reason.
//!
//! Reading order: [`SourceTable`], [`SourceRow`], [`Household`], [`SourceStream`], [`Foundation`].

mod account_links;
mod accounts;
mod channels;
mod dependents;
mod guides;
mod household;
mod ids;
mod lineups;
mod logos;
mod plan;
mod report;
mod row;
mod settings;
pub mod sql;
mod stream;
mod stream_profiles;
mod table;
#[cfg(test)]
mod tests;
mod titles;
mod user_agents;
mod users;

pub use self::dependents::Dependents;
pub use self::household::{ChannelStreamLink, GuideChannel, Household, TooManyRows};
pub use self::ids::IdPicker;
pub use self::plan::{Existing, Foundation, PlannedAccount, Rules, UnusedIds};
pub use self::report::{KindReport, Report};
pub use self::row::{SourceRow, plain};
pub use self::stream::SourceStream;
pub use self::table::{CHANNELS_MAX, LOGO_FILE, STREAMS_MAX, SourceTable, UNUSED_TABLES, unused_table};
pub use self::titles::{KnownTitles, PlannedTitles};
pub use self::users::PlannedUser;
