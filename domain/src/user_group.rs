//! Groups of users, and the permissions that users hold directly or through a group.
//!
//! The level of a user decides what the user may do. Permissions are kept and shown for clients that organise users by
//! them, and grant nothing.

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
    let of_groups =
        groups.into_iter().filter(|it| user.groups.contains(&it.id)).flat_map(|it| &it.permissions);
    let held: BTreeSet<PermissionId> = user.permissions.iter().chain(of_groups).copied().collect();
    Permission::all().filter(|it| user.is_superuser || held.contains(&it.id)).collect()
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
}
