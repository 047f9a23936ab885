//! Fields whose values are a few texts.

use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape, Stored, not_a_choice};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// An enum whose values are texts on the wire.
pub(crate) trait Choice: Copy + 'static {
    const NAMES: &'static [&'static str];
    /// Each name, and each name with a minus for descending order.
    const ORDERINGS: &'static [&'static str];

    fn from_name(name: &str) -> Option<Self>;

    fn name(self) -> &'static str;
}

/// Declares the names of the values of an enum on the wire, and with `enum` the enum itself.
macro_rules! choice {
    ($(#[$meta:meta])* enum $type:ident { $($value:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $type {
            $($value),+
        }

        $crate::choice::choice!($type { $($value = $name),+ });
    };
    ($type:ty { $($value:ident = $name:literal),+ $(,)? }) => {
        impl $crate::choice::Choice for $type {
            const NAMES: &'static [&'static str] = &[$($name),+];
            const ORDERINGS: &'static [&'static str] = &[$($name, concat!("-", $name)),+];

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$value),)+
                    _ => None,
                }
            }

            fn name(self) -> &'static str {
                match self { $(Self::$value => $name),+ }
            }
        }
    };
}
pub(crate) use choice;

/// A field whose type is a [`Choice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<T>(pub(crate) T);

impl<T: Choice> Shape for Named<T> {
    const KIND: Kind = Kind::Choice(T::NAMES);
}

impl<T: Choice> Readable for Named<T> {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        value.as_str().and_then(T::from_name).map(Named).ok_or_else(|| not_a_choice(value, T::NAMES))
    }
}

impl<T: Choice> Stored<T> for Named<T> {
    fn from_stored(value: &T) -> Self {
        Named(*value)
    }

    fn into_stored(self) -> T {
        self.0
    }
}

impl<T: Choice> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}
