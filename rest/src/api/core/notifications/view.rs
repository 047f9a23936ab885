//! The shapes of notifications on the wire.

use domain::notice::{Notice, NoticeKind, NoticePriority};
use resource_derive::{Query, View};
use route_frame::value::Time;
use serde::Serialize;
use serde_json::Value;
use server::reply::Refusal;
use sha2::{Digest, Sha256};

use crate::choice::{Named, choice};
use crate::gateway_conditions::{Condition, Severity};
use crate::record::{set, set_fields, view_from};

/// A notification.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewNotification, edit = NotificationEdit)]
pub(crate) struct NotificationView {
    /// Id of the notification.
    #[field(example = "7")]
    pub(super) id: u32,
    /// Unique key.
    #[field(required, chars_max = 255, example = "maintenance-may")]
    pub(super) notification_key: String,
    /// Kind of the notification.
    #[field(edit, example = "announcement")]
    notification_type: Named<NoticeKind>,
    /// How urgent it is.
    #[field(edit, example = "normal")]
    pub(super) priority: Named<NoticePriority>,
    /// The notification in a few words.
    #[field(required, chars_max = 255, example = "Maintenance")]
    title: String,
    /// The notification.
    #[field(required, chars_max = 4096, example = "The gateway restarts tonight.")]
    message: String,
    /// Data for the interface, at most 16 KiB as JSON.
    #[field(edit)]
    action_data: Value,
    /// Users do not get an inactive notification.
    #[field(edit)]
    is_active: bool,
    /// Whether only admins get it.
    #[field(edit)]
    admin_only: bool,
    /// Users do not get it after this time.
    #[field(edit)]
    expires_at: Option<Time>,
    /// Time of creation; now for conditions of the gateway.
    pub(super) created_at: Time,
    /// Whether the caller has dismissed it.
    pub(super) is_dismissed: bool,
    /// `system` for conditions of the gateway, `developer` for those of admins.
    #[field(example = "system")]
    source: &'static str,
}

/// The notifications of the caller.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NotificationsView {
    /// The notifications, the most urgent first.
    pub(super) notifications: Vec<NotificationView>,
    /// Number of notifications in the answer.
    #[field(example = "1")]
    pub(super) count: usize,
    /// Number of notifications that the caller has not dismissed.
    #[field(example = "1")]
    pub(super) unread_count: usize,
}

/// The number of notifications of the caller.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NotificationCountView {
    /// Number of notifications that the caller has not dismissed.
    #[field(example = "1")]
    pub(super) unread_count: usize,
}

/// Result of dismissing notifications.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DismissedView {
    /// Always true.
    pub(super) success: bool,
    /// Number of notifications that were dismissed now.
    #[field(example = "1")]
    pub(super) dismissed_count: usize,
}

/// Selects notifications.
#[derive(Debug, Query)]
pub(crate) struct NotificationsQuery {
    /// Whether dismissed notifications are in the answer; false by default.
    pub(super) include_dismissed: Option<bool>,
}

choice!(NoticeKind {
    VersionUpdate = "version_update",
    SettingRecommendation = "setting_recommendation",
    Announcement = "announcement",
    Warning = "warning",
    Info = "info",
});
choice!(NoticePriority { Low = "low", Normal = "normal", High = "high", Critical = "critical" });

/// Maximum size of `action_data` as JSON, in bytes.
const ACTION_BYTES_MAX: usize = 16 << 10;
/// Ids of conditions begin here, so that they differ from those of stored notices.
const FIRST_CONDITION_ID: u32 = 1 << 30;

impl NotificationEdit {
    /// Applies the edit and checks the result.
    pub(super) fn apply(self, notice: &mut Notice) -> Result<(), Refusal> {
        set(&mut notice.key, self.notification_key);
        set(&mut notice.kind, self.notification_type.map(|it| it.0));
        set_fields!(notice from self: priority, title, message, is_active, expires_at);
        set(&mut notice.action_data, self.action_data.map(|it| it.to_string()));
        set(&mut notice.for_admins, self.admin_only);
        match notice.action_data.len() > ACTION_BYTES_MAX {
            true => Err(Refusal::field(
                "action_data",
                format!("Ensure this field has no more than {ACTION_BYTES_MAX} bytes as JSON."),
            )),
            false => Ok(()),
        }
    }
}

/// Returns the view of a condition. Its id follows from its key.
pub(super) fn condition_view(condition: Condition, now: i64, is_dismissed: bool) -> NotificationView {
    let digest = Sha256::digest(&condition.key);
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let priority = match condition.severity {
        Severity::Error => NoticePriority::Critical,
        Severity::Warning => NoticePriority::High,
    };
    NotificationView {
        id: FIRST_CONDITION_ID | (number % FIRST_CONDITION_ID),
        admin_only: !condition.kind.is_for_all_users(),
        notification_key: condition.key,
        notification_type: Named(NoticeKind::Warning),
        priority: Named(priority),
        title: condition.title,
        message: format!("{} {}", condition.message, condition.advice),
        action_data: Value::Null,
        is_active: true,
        expires_at: None,
        created_at: Time(now),
        is_dismissed,
        source: "system",
    }
}

/// Returns the view of a stored notice.
pub(super) fn notice_view(notice: &Notice, is_dismissed: bool) -> NotificationView {
    view_from!(NotificationView from notice {
        id, priority, title, message, is_active, expires_at, created_at;
        notification_key: notice.key.clone(),
        notification_type: Named(notice.kind),
        action_data: serde_json::from_str(&notice.action_data).unwrap_or(Value::Null),
        admin_only: notice.for_admins,
        is_dismissed,
        source: "developer",
    })
}
