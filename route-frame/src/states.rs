//! Values that are found by their type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

/// The state of each part of the gateway, or of a crate: one value of a type of its own. So a part reaches its state without
/// knowing who puts all states together.
#[derive(Default)]
pub struct States(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl States {
    /// Adds the state of a part.
    pub fn with<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Box::new(state));
        self
    }

    /// Returns the state of a part.
    ///
    /// # Panics
    /// It was not added, which a test of any route finds.
    pub fn get<T: Any>(&self) -> &T {
        let state = self.0.get(&TypeId::of::<T>()).and_then(|it| it.downcast_ref());
        state.expect("the gateway adds the state of each part")
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("States(…)")
    }
}
