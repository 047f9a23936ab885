//! Notices for users: those that admins write, and which notices a user has dismissed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// Maximum number of stored notices.
pub const NOTICES_MAX: usize = 500;
/// A stored notice is removed when another one is created this long after it, in milliseconds: one year.
pub const NOTICE_AGE_MS_MAX: i64 = 365 * 24 * 60 * 60 * 1000;

/// A notice that an admin has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub id: u32,
    /// Identifies the notice for clients. Unique.
    pub key: String,
    pub kind: NoticeKind,
    pub priority: NoticePriority,
    pub title: String,
    pub message: String,
    /// Data for the interface, as JSON.
    pub action_data: String,
    pub is_active: bool,
    /// Whether only admins get it.
    pub for_admins: bool,
    /// Milliseconds since 1970, like `created_at`.
    pub expires_at: Option<i64>,
    pub created_at: i64,
}

impl Notice {
    /// Returns whether users get the notice at this time, in milliseconds since 1970.
    pub fn is_for(&self, is_admin: bool, now: i64) -> bool {
        self.is_active && (is_admin || !self.for_admins) && self.expires_at.is_none_or(|at| at > now)
    }
}

/// The kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    VersionUpdate,
    SettingRecommendation,
    Announcement,
    Warning,
    Info,
}

/// How urgent a notice is. Ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticePriority {
    Low,
    Normal,
    High,
    Critical,
}

/// Maximum number of notices that a user can have dismissed at one time.
pub const DISMISSED_MAX: usize = 2_000;

/// The notices that a user has dismissed. One record per user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissedNotices {
    pub user: UserId,
    /// Keys of notices that still exist, at most [`DISMISSED_MAX`].
    pub keys: BTreeSet<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_for_active_readers_until_it_expires() {
        let notice = Notice {
            id: 1,
            key: "may".to_owned(),
            kind: NoticeKind::Announcement,
            priority: NoticePriority::Normal,
            title: String::new(),
            message: String::new(),
            action_data: "null".to_owned(),
            is_active: true,
            for_admins: false,
            expires_at: Some(10),
            created_at: 0,
        };
        assert!(notice.is_for(false, 9) && !notice.is_for(false, 10));
        let secret = Notice { for_admins: true, expires_at: None, ..notice.clone() };
        assert!(secret.is_for(true, 10) && !secret.is_for(false, 10));
        assert!(!Notice { is_active: false, ..notice }.is_for(true, 0));
    }
}
