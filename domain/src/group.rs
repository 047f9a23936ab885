//! A channel group, which sorts channels and streams for people.

use serde::{Deserialize, Serialize};

use crate::ids::GroupId;

/// Maximum length of a group's name, in characters.
pub const GROUP_NAME_CHARS_MAX: usize = 255;

/// A group of channels, and of the streams whose providers use one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub id: GroupId,
    /// Unique among the names and aliases of all groups.
    pub name: String,
    /// Former names, which providers keep using.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Its place among the groups, from 1; groups without one come last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Whether its channels and streams count as adult content, those that it gets later included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_adult: bool,
}

impl Group {
    pub fn new(id: GroupId, name: impl Into<String>) -> Self {
        Self { id, name: name.into(), aliases: Vec::new(), position: None, is_adult: false }
    }

    /// Returns its place in lists of groups, for sorting.
    pub fn place(&self) -> u32 {
        self.position.unwrap_or(u32::MAX)
    }

    /// Returns its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }

    /// Changes its name and keeps the old one as an alias.
    pub fn rename(&mut self, name: impl Into<String>) {
        let name = name.into();
        self.aliases.retain(|it| *it != name);
        let old = std::mem::replace(&mut self.name, name);
        if old != self.name {
            self.aliases.push(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_group_is_found_by_its_old_names_too() {
        let mut group = Group::new(GroupId(1), "a");
        group.rename("b");
        group.rename("b");
        group.rename("c");
        assert_eq!(group.names().collect::<Vec<_>>(), ["c", "a", "b"]);
        group.rename("a");
        assert_eq!(group.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
