//! Groups of users, and the permissions that users hold directly or through a group.
//!
//! The level of a user decides what the user may do. A few permissions give users some of what level 1 has, once an admin has
//! given or confirmed them; the others are kept and shown for clients that organise users by them, and have no effect.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::{PermissionId, UserGroupId};
use crate::user::User;

/// Maximum length of a group's name, in characters.
pub const USER_GROUP_NAME_CHARS_MAX: usize = 150;

/// A named set of permissions for users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserGroup {
    pub id: UserGroupId,
    /// Unique.
    pub name: String,
    #[serde(default)]
    pub permissions: BTreeSet<PermissionId>,
}

/// Something that can be done to one kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    pub id: PermissionId,
    action: &'static str,
    /// Name of the kind of record for programs, and for people.
    subject: (&'static str, &'static str),
}

const ACTIONS: [&str; 4] = ["add", "change", "delete", "view"];

/// The kinds of records. New ones are added at the end, because the position determines the ids.
const SUBJECTS: [(&str, &str); 16] = [
    ("user", "user"),
    ("group", "group"),
    ("channel", "channel"),
    ("channelgroup", "channel group"),
    ("channelprofile", "channel profile"),
    ("stream", "stream"),
    ("logo", "logo"),
    ("m3uaccount", "playlist account"),
    ("epgsource", "guide source"),
    ("recording", "recording"),
    ("coresettings", "core settings"),
    ("streamprofile", "stream profile"),
    ("useragent", "user agent"),
    ("integration", "integration"),
    ("plugin", "plugin"),
    ("backup", "back-up"),
];

/// Reads channels, live channels and programmes, as users of level 1 do, without anything about their sources.
pub const VIEW_CHANNEL: PermissionId = PermissionId(12);
/// Reads the channel profiles that are assigned to the user.
pub const VIEW_CHANNEL_PROFILE: PermissionId = PermissionId(20);
/// Schedules recordings.
pub const ADD_RECORDING: PermissionId = PermissionId(37);

/// The permissions that have an effect, and what they let a user do. Nothing here goes beyond what level 1 has.
pub const EFFECTS: [(PermissionId, &str); 3] = [
    (
        VIEW_CHANNEL,
        "A user of level 0 reads the visible channels, whether they play, and their programmes, as a user of level 1 \
         does; nothing about their streams.",
    ),
    (VIEW_CHANNEL_PROFILE, "A user of level 0 reads the channel profiles that are assigned to the user."),
    (
        ADD_RECORDING,
        "A user of level 0 or 1 schedules recordings of visible channels and makes rules for them, and sees, changes \
         and deletes these. The property `recordings_enabled` of the user, if it is false, comes before that.",
    ),
];

impl Permission {
    /// Returns all permissions, by id.
    pub fn all() -> impl Iterator<Item = Permission> {
        let pairs = SUBJECTS.into_iter().flat_map(|subject| ACTIONS.map(|action| (subject, action)));
        (1..).zip(pairs).map(|(id, (subject, action))| Permission { id: PermissionId(id), action, subject })
    }

    /// Returns the permission with this id.
    pub fn from_id(id: PermissionId) -> Option<Permission> {
        Self::all().find(|it| it.id == id)
    }

    /// Returns what it lets a user do; `None` if it has no effect.
    pub fn effect(&self) -> Option<&'static str> {
        EFFECTS.iter().find(|it| it.0 == self.id).map(|it| it.1)
    }

    /// Returns the name for people.
    pub fn name(&self) -> String {
        format!("Can {} {}", self.action, self.subject.1)
    }

    /// Returns the name for programs.
    pub fn codename(&self) -> String {
        format!("{}_{}", self.action, self.subject.0)
    }
}

/// Returns the permissions of a user: the direct ones and those of the user's groups; all of them for a superuser.
pub fn permissions_of<'a>(user: &User, groups: impl IntoIterator<Item = &'a UserGroup>) -> Vec<Permission> {
    let held = held_permissions(user, groups);
    Permission::all().filter(|it| user.is_superuser || held.contains(&it.id)).collect()
}

/// Returns the ids of the permissions of a user: the direct ones and those of the user's groups.
pub fn held_permissions<'a>(
    user: &User,
    groups: impl IntoIterator<Item = &'a UserGroup>,
) -> BTreeSet<PermissionId> {
    let of_groups =
        groups.into_iter().filter(|it| user.groups.contains(&it.id)).flat_map(|it| &it.permissions);
    user.permissions.iter().chain(of_groups).copied().collect()
}

impl User {
    /// Follows a change of the permissions that the user holds: what is gone is not granted any more. What is new is granted
    /// if an admin made the change; what the user held before without effect stays so.
    pub fn follow_permissions(
        &mut self,
        before: &BTreeSet<PermissionId>,
        held: &BTreeSet<PermissionId>,
        by_admin: bool,
    ) {
        self.granted.retain(|it| held.contains(it));
        if by_admin {
            self.granted.extend(held.difference(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::UserId;
    use crate::user::UserLevel;

    #[test]
    fn every_permission_has_its_own_id_and_names() {
        let all: Vec<_> = Permission::all().collect();
        let codenames: BTreeSet<String> = all.iter().map(Permission::codename).collect();
        assert_eq!((all.len(), codenames.len()), (64, 64));
        assert_eq!(all.iter().map(|it| it.id.0).collect::<Vec<_>>(), (1..=64).collect::<Vec<_>>());
        let sixth = Permission::from_id(PermissionId(6)).unwrap();
        assert_eq!((sixth.name(), sixth.codename()), ("Can change group".into(), "change_group".into()));
        assert_eq!(Permission::from_id(PermissionId(65)), None);
    }

    #[test]
    fn a_user_holds_direct_permissions_and_those_of_its_groups() {
        let group = |id: u32, permission: u32| UserGroup {
            id: UserGroupId(id),
            name: id.to_string(),
            permissions: BTreeSet::from([PermissionId(permission)]),
        };
        let groups = [group(1, 3), group(2, 5)];
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        user.permissions = BTreeSet::from([PermissionId(1), PermissionId(3)]);
        user.groups = vec![UserGroupId(1)];
        let held = |user: &User| permissions_of(user, &groups).iter().map(|it| it.id.0).collect::<Vec<_>>();
        assert_eq!(held(&user), [1, 3]);
        user.groups.push(UserGroupId(2));
        assert_eq!(held(&user), [1, 3, 5]);
        user.is_superuser = true;
        assert_eq!(held(&user).len(), 64);
    }

    #[test]
    fn only_what_an_admin_gives_or_confirms_is_granted() {
        let set = |ids: &[u32]| ids.iter().copied().map(PermissionId).collect::<BTreeSet<_>>();
        for (granted, before, held, by_admin, expected) in [
            // From before the upgrade: sent back unchanged, and beside a new one.
            (&[][..], &[1, 2][..], &[1, 2][..], true, &[][..]),
            (&[], &[1], &[1, 2], true, &[2]),
            (&[], &[1], &[1, 2], false, &[]),
            // Taken away, and given again.
            (&[1, 2], &[1, 2], &[2], true, &[2]),
            (&[1, 2], &[1, 2], &[2], false, &[2]),
            (&[2], &[2], &[1, 2], true, &[1, 2]),
        ] {
            let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
            user.granted = set(granted);
            user.follow_permissions(&set(before), &set(held), by_admin);
            assert_eq!(user.granted, set(expected), "{granted:?} {before:?} {held:?} {by_admin}");
        }
    }

    #[test]
    fn a_granted_permission_gives_at_most_what_level_1_has() {
        let names: Vec<_> = EFFECTS.map(|it| Permission::from_id(it.0).unwrap().codename()).into();
        assert_eq!(names, ["view_channel", "view_channelprofile", "add_recording"]);
        let mut user = User::new(UserId(1), "a", UserLevel::Streamer, 0);
        user.permissions.insert(ADD_RECORDING);
        assert!(!user.may_with(UserLevel::Standard, Some(ADD_RECORDING)), "nobody confirmed it");
        user.granted.insert(ADD_RECORDING);
        assert!(user.may_with(UserLevel::Standard, Some(ADD_RECORDING)));
        for (level, permission) in [
            (UserLevel::Standard, None),
            (UserLevel::Standard, Some(VIEW_CHANNEL)),
            (UserLevel::Admin, Some(ADD_RECORDING)),
        ] {
            assert!(!user.may_with(level, permission), "{level} {permission:?}");
        }
        user.is_active = false;
        assert!(!user.may_with(UserLevel::Standard, Some(ADD_RECORDING)));
    }
}
