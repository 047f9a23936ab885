//! `/api/core/notifications/`: notices for users, from conditions of the gateway and from admins.

mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::now_ms;
use domain::ids::UserId;
use domain::notice::{
    DISMISSED_MAX, DismissedNotices, NOTICE_AGE_MS_MAX, NOTICES_MAX, Notice, NoticeKind, NoticePriority,
};
use domain::user::{User, UserLevel};
use http::StatusCode;
use route_frame::access::{ADMIN, STREAMER};
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use server::reply::Refusal;
use storage::Write;

use self::view::{
    DismissedView, NewNotification, NotificationCountView, NotificationEdit, NotificationView,
    NotificationsQuery, NotificationsView, condition_view, notice_view,
};
use crate::context::RestCall;
use crate::gateway_conditions::{Condition, conditions};
use crate::record::{RecordCall, find, refuse_if};

const LIST: &str = "/api/core/notifications/";
const ONE: &str = "/api/core/notifications/{id}/";
const COUNT: &str = "/api/core/notifications/count/";
const DISMISS: &str = "/api/core/notifications/{id}/dismiss/";
const DISMISS_ALL: &str = "/api/core/notifications/dismiss-all/";

pub(super) fn routes() -> Vec<Route> {
    const FULL: &str = "There are too many notifications, or the data is too large.";
    vec![
        Route::get(LIST, STREAMER, "Lists the notifications of the caller.", list),
        Route::post(LIST, ADMIN, "Creates a notification.", create).refuses(StatusCode::BAD_REQUEST, FULL),
        Route::get(COUNT, STREAMER, "Counts the notifications that the caller has not dismissed.", count),
        Route::post(
            DISMISS_ALL,
            STREAMER,
            "Removes all notifications from the list of the caller.",
            dismiss_all,
        ),
        Route::get(ONE, STREAMER, "Returns a notification of the caller.", retrieve),
        Route::put(ONE, ADMIN, "Updates a notification of an admin.", update),
        Route::patch(ONE, ADMIN, "Partially updates a notification of an admin.", update),
        Route::delete(ONE, ADMIN, "Deletes a notification of an admin.", delete),
        Route::post(DISMISS, STREAMER, "Removes a notification from the list of the caller.", dismiss),
    ]
}

async fn list(call: Call, query: NotificationsQuery) -> Result<NotificationsView, Refusal> {
    let mut notifications = notifications_of_caller(&call).await?;
    let unread_count = n_unread(&notifications);
    if query.include_dismissed != Some(true) {
        notifications.retain(|it| !it.is_dismissed);
    }
    Ok(NotificationsView { count: notifications.len(), notifications, unread_count })
}

async fn count(call: Call) -> Result<NotificationCountView, Refusal> {
    Ok(NotificationCountView { unread_count: n_unread(&notifications_of_caller(&call).await?) })
}

async fn retrieve(call: Call) -> Result<NotificationView, Refusal> {
    let id = call.id()?;
    let found = notifications_of_caller(&call).await?.into_iter().find(|it| it.id == id);
    found.ok_or_else(Refusal::unknown::<Notice>)
}

async fn create(call: Call, new: NewNotification) -> Result<Created<NotificationView>, Refusal> {
    let made = call.write(move |write| {
        let now = now_ms();
        let stored = write.all::<Notice>()?;
        let (old, kept): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|it| it.created_at < now - NOTICE_AGE_MS_MAX);
        for notice in old {
            write.remove::<Notice>(notice.id)?;
        }
        refuse_if(kept.len() >= NOTICES_MAX, "There are too many notifications; delete some first.")?;
        let mut notice = Notice {
            id: write.next_id::<Notice>()?,
            key: String::new(),
            kind: NoticeKind::Announcement,
            priority: NoticePriority::Normal,
            title: String::new(),
            message: String::new(),
            action_data: "null".to_owned(),
            is_active: true,
            for_admins: false,
            expires_at: None,
            created_at: now,
        };
        NotificationEdit::from(new).apply(&mut notice)?;
        write.put(&notice)?;
        Ok(notice)
    });
    Ok(Created(notice_view(&made.await?, false)))
}

async fn update(call: Call, edit: NotificationEdit) -> Result<NotificationView, Refusal> {
    let id = call.id()?;
    let is_dismissed = dismissed_by(&call, call.identity()?.id);
    let changed = call.write(move |write| {
        let mut notice = find::<Notice>(write, id)?;
        edit.apply(&mut notice)?;
        write.put(&notice)?;
        Ok(notice)
    });
    let notice = changed.await?;
    Ok(notice_view(&notice, is_dismissed(&notice.key)))
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    call.delete(|_, _: &Notice| Ok(())).await
}

async fn dismiss(call: Call) -> Result<DismissedView, Refusal> {
    let id = call.id()?;
    let all = notifications_of_caller(&call).await?;
    let found = all.iter().find(|it| it.id == id).ok_or_else(Refusal::unknown::<Notice>)?;
    let chosen = BTreeSet::from([found.notification_key.clone()]);
    dismiss_these(&call, &all, chosen).await
}

async fn dismiss_all(call: Call) -> Result<DismissedView, Refusal> {
    let all = notifications_of_caller(&call).await?;
    let chosen = all.iter().map(|it| it.notification_key.clone()).collect();
    dismiss_these(&call, &all, chosen).await
}

/// Dismisses the chosen notifications. `all` are those of the caller; dismissals of others are forgotten, so that a
/// condition that returns is shown again.
async fn dismiss_these(
    call: &Call,
    all: &[NotificationView],
    chosen: BTreeSet<String>,
) -> Result<DismissedView, Refusal> {
    let user = call.user()?.id;
    let mut keys: BTreeSet<String> =
        all.iter().filter(|it| it.is_dismissed).map(|it| it.notification_key.clone()).collect();
    let n_before = keys.len();
    let room = DISMISSED_MAX.saturating_sub(n_before);
    keys.extend(chosen.into_iter().take(room));
    let dismissed_count = keys.len() - n_before;
    if dismissed_count > 0 {
        call.write(move |write| {
            forget_deleted_users(write)?;
            Ok(write.put(&DismissedNotices { user, keys })?)
        })
        .await?;
    }
    Ok(DismissedView { success: true, dismissed_count })
}

fn forget_deleted_users(write: &mut Write<'_>) -> Result<(), Refusal> {
    for dismissed in write.all::<DismissedNotices>()? {
        if write.get::<User>(dismissed.user.0)?.is_none() {
            write.remove::<DismissedNotices>(dismissed.user.0)?;
        }
    }
    Ok(())
}

fn n_unread(notifications: &[NotificationView]) -> usize {
    notifications.iter().filter(|it| !it.is_dismissed).count()
}

/// Returns the test whether a user has dismissed the notice with this key.
fn dismissed_by(call: &Call, user: UserId) -> impl Fn(&str) -> bool + use<> {
    let record = call.rest().models.dismissed_notices.load().get(user.0).cloned();
    move |key| record.as_ref().is_some_and(|it| it.keys.contains(key))
}

/// Returns the present conditions of the gateway that the caller gets.
async fn conditions_for(call: &Call, is_admin: bool) -> Result<Vec<Condition>, Refusal> {
    let context = Arc::clone(call.rest());
    // Reads the file system.
    let mut found = run_blocking("read the state of the gateway", move || conditions(&context)).await?;
    found.retain(|it| is_admin || it.kind.is_for_all_users());
    Ok(found)
}

/// Returns the notifications that the caller gets, the most urgent first, and the newest first among equals.
async fn notifications_of_caller(call: &Call) -> Result<Vec<NotificationView>, Refusal> {
    let user = call.identity()?;
    let (is_admin, now) = (user.may(UserLevel::Admin), now_ms());
    let is_dismissed = dismissed_by(call, user.id);
    let conditions = conditions_for(call, is_admin).await?;
    let mut found: Vec<_> = conditions
        .into_iter()
        .map(|it| {
            let dismissed = is_dismissed(&it.key);
            condition_view(it, now, dismissed)
        })
        .collect();
    let stored = call.rest().models.notices.load();
    let own = stored.iter().filter(|it| it.is_for(is_admin, now));
    found.extend(own.map(|it| notice_view(it, is_dismissed(&it.key))));
    found.sort_by_key(|it| std::cmp::Reverse((it.priority.0, it.created_at.0)));
    Ok(found)
}
