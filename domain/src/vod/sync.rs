//! The results of the imports of films and series of an account.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::relation::Relation;
use super::title::TitleKind;
use crate::account::RefreshOutcome;
use crate::ids::{AccountId, VodCategoryId};

/// The results of an account's imports of films and series. A separate record, so that an import that finds nothing new
/// writes no title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VodSync {
    pub account: AccountId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movies: Option<KindSync>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<KindSync>,
}

/// The results of the imports of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSync {
    pub outcome: RefreshOutcome,
    /// A message for the admin, without credentials.
    pub message: String,
    /// End of the last import, in milliseconds since 1970.
    pub tried_at: i64,
    /// End of the last successful import, at which all relations that are not stale were seen.
    #[serde(default)]
    pub good_at: Option<i64>,
    /// Number of titles that the last successful import found.
    #[serde(default)]
    pub n_good: u64,
    /// When the titles of the categories were seen that the last successful import did not ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub earlier: BTreeMap<VodCategoryId, i64>,
}

impl VodSync {
    /// Creates the record of an account that was never imported.
    pub fn new(account: AccountId) -> Self {
        Self { account, movies: None, series: None }
    }

    pub fn kind_sync(&self, kind: TitleKind) -> Option<&KindSync> {
        match kind {
            TitleKind::Movie => self.movies.as_ref(),
            TitleKind::Series => self.series.as_ref(),
        }
    }

    pub fn kind_sync_mut(&mut self, kind: TitleKind) -> &mut Option<KindSync> {
        match kind {
            TitleKind::Movie => &mut self.movies,
            TitleKind::Series => &mut self.series,
        }
    }

    /// Returns when a relation of this account was last seen in its list, in milliseconds since 1970.
    pub fn last_seen(&self, kind: TitleKind, relation: &Relation) -> Option<i64> {
        relation.last_seen.or_else(|| {
            let of_kind = self.kind_sync(kind)?;
            of_kind.earlier.get(&relation.category).copied().or(of_kind.good_at)
        })
    }
}
