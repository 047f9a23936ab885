//! Installed plugins, their schedules, and the values that they store.

use domain::plugin::{Plugin, PluginKey, PluginSchedules, PluginValue};
use domain::secret::Secret;

use crate::error::Result;
use crate::record::{Keys, Record, Sharing};
use crate::write::Write;

impl Record for Plugin {
    const COLLECTION: &'static str = "plugins";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Settings contain passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("key", self.key.as_str());
    }
}

impl Record for PluginSchedules {
    const COLLECTION: &'static str = "plugin_schedules";
    const SHARING: Sharing = Sharing::FullNodes;
    /// The parameters are written by plugins, which may put passwords there.
    const SEALED: bool = true;
    const MAY_BE_MISSED: bool = true;

    /// The id of the plugin.
    fn id(&self) -> u32 {
        self.id
    }
}

impl Record for PluginValue {
    const COLLECTION: &'static str = "plugin_values";
    const SHARING: Sharing = Sharing::FullNodes;
    /// Plugins may keep tokens there.
    const SEALED: bool = true;
    /// A plugin has to cope with a missing value; the gateway starts without it.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("plugin", self.plugin.as_str());
        keys.unique("name", name_of(&self.plugin, &self.key));
    }
}

/// Returns the key of the index of values by their plugins and keys. A plugin has no zero in its key.
fn name_of(plugin: &PluginKey, key: &str) -> String {
    format!("{plugin}\0{key}")
}

/// Sets a value of a plugin, or removes it.
pub fn set_plugin_value(
    write: &mut Write<'_>,
    plugin: &PluginKey,
    key: String,
    value: Option<Secret>,
) -> Result<()> {
    let known = write.by::<PluginValue>("name", name_of(plugin, &key))?.pop().map(|it| it.id);
    match (value, known) {
        (Some(value), _) => {
            let id = known.map_or_else(|| write.next_id::<PluginValue>(), Ok)?;
            write.put(&PluginValue { id, plugin: plugin.clone(), key, value })
        }
        (None, Some(id)) => write.remove::<PluginValue>(id).map(drop),
        (None, None) => Ok(()),
    }
}

/// Removes all values of a plugin.
pub fn remove_plugin_values(write: &mut Write<'_>, plugin: &PluginKey) -> Result<()> {
    for value in write.by::<PluginValue>("plugin", plugin.as_str())? {
        write.remove::<PluginValue>(value.id)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_plugin_has_one_record_for_each_key_and_those_of_others_stay() {
        let store = Store::temporary(crate::records::schema()).unwrap();
        let [demo, other] = ["demo", "other"].map(|it| PluginKey::from_folder(it).unwrap());
        let set = |plugin: &PluginKey, key: &str, value: Option<&str>| {
            let (plugin, key, value) = (plugin.clone(), key.to_owned(), value.map(Secret::new));
            store.write_blocking(move |write| set_plugin_value(write, &plugin, key, value)).unwrap();
        };
        let values = |plugin: &PluginKey| -> Vec<_> {
            let all = store.collection::<PluginValue>().by("plugin", plugin.as_str()).unwrap();
            all.into_iter().map(|it| (it.key, it.value.expose().to_owned())).collect()
        };
        for (plugin, key, value) in
            [(&demo, "a", "1"), (&demo, "b", "2"), (&other, "a", "3"), (&demo, "a", "4")]
        {
            set(plugin, key, Some(value));
        }
        set(&demo, "b", None);
        set(&demo, "nothing", None);
        assert_eq!(values(&demo), [("a".to_owned(), "4".to_owned())]);
        let removed = demo.clone();
        store.write_blocking(move |write| remove_plugin_values(write, &removed)).unwrap();
        assert_eq!((values(&demo), values(&other)), (vec![], vec![("a".to_owned(), "3".to_owned())]));
    }
}
