//! One table per resource, written once: the macros make of it what is shown, what is read, and the table itself.
//!
//! ```text
//! record! {
//!     /// A channel group: how channels are sorted for people.
//!     ChannelGroup / GroupEdit {
//!         read {
//!             /// Given by the gateway.
//!             id: GroupId,
//!         }
//!         edit {
//!             /// Unique over all groups.
//!             name: String [required(), chars_max(255)],
//!         }
//!         write {
//!             /// Never shown again.
//!             password: Secret [chars_max(128)],
//!         }
//!     }
//! }
//! ```
//!
//! makes the struct `ChannelGroup { id, name }`, which serialises, and `GroupEdit { name: Option<String>, password:
//! Option<Secret> }`, which a handler may take. In the second a field is `None` when it was not sent; one that may be
//! `null` is written `Option<…>` and is then an option of an option. The comments are the meanings in the schema, the
//! rules in brackets are methods of [`Field`](super::field::Field), and the names of structs are names in the schema.
//! A field that no handler uses is a warning of the compiler.
//!
//! `view!` is the first half alone, `body!` the second, and `query!` is for filters.

/// What is shown and what may be changed of one thing.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        $view:ident / $edit:ident {
            $(read { $(
                $(#[doc = $read_meaning:literal])+ $read:ident: $read_type:ty $([$($read_rules:tt)*])?
            ),+ $(,)? })?
            $(edit { $(
                $(#[doc = $both_meaning:literal])+ $both:ident: $both_type:ty $([$($both_rules:tt)*])?
            ),+ $(,)? })?
            $(write { $(
                $(#[doc = $write_meaning:literal])+ $write:ident: $write_type:ty $([$($write_rules:tt)*])?
            ),+ $(,)? })?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Serialize)]
        pub(crate) struct $view {
            $($($(#[doc = $read_meaning])+ pub(crate) $read: $read_type,)+)?
            $($($(#[doc = $both_meaning])+ pub(crate) $both: $both_type,)+)?
        }

        impl $view {
            pub(crate) const RECORD: $crate::rest::frame::field::Record = $crate::rest::frame::field::Record {
                name: stringify!($view),
                meaning: concat!($($about),+),
                fields: &[
                    $($($crate::rest::frame::record::field!(Read, $read, $read_type, [$($read_meaning)+] $([$($read_rules)*])?),)+)?
                    $($($crate::rest::frame::record::field!(Edit, $both, $both_type, [$($both_meaning)+] $([$($both_rules)*])?),)+)?
                    $($($crate::rest::frame::record::field!(Write, $write, $write_type, [$($write_meaning)+] $([$($write_rules)*])?),)+)?
                ],
            };
        }

        impl $crate::rest::frame::value::Shape for $view {
            const KIND: $crate::rest::frame::field::Kind = $crate::rest::frame::field::Kind::Record(&Self::RECORD);
        }

        $crate::rest::frame::record::read_from_body! {
            $(#[doc = $about])+
            $edit of ($view::RECORD) {
                $($($(#[doc = $both_meaning])+ $both: $both_type,)+)?
                $($($(#[doc = $write_meaning])+ $write: $write_type,)+)?
            }
        }
    };
}

/// Something that is only shown.
macro_rules! view {
    (
        $(#[doc = $about:literal])+
        $view:ident { $(
            $(#[doc = $meaning:literal])+ $name:ident: $type:ty $([$($rules:tt)*])?
        ),+ $(,)? }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Serialize)]
        pub(crate) struct $view {
            $($(#[doc = $meaning])+ pub(crate) $name: $type,)+
        }

        impl $view {
            pub(crate) const RECORD: $crate::rest::frame::field::Record = $crate::rest::frame::field::Record {
                name: stringify!($view),
                meaning: concat!($($about),+),
                fields: &[$($crate::rest::frame::record::field!(Read, $name, $type, [$($meaning)+] $([$($rules)*])?),)+],
            };
        }

        impl $crate::rest::frame::value::Shape for $view {
            const KIND: $crate::rest::frame::field::Kind = $crate::rest::frame::field::Kind::Record(&Self::RECORD);
        }
    };
}

/// The body of an action.
macro_rules! body {
    (
        $(#[doc = $about:literal])+
        $body:ident { $(
            $(#[doc = $meaning:literal])+ $name:ident: $type:ty $([$($rules:tt)*])?
        ),+ $(,)? }
    ) => {
        impl $body {
            pub(crate) const RECORD: $crate::rest::frame::field::Record = $crate::rest::frame::field::Record {
                name: stringify!($body),
                meaning: concat!($($about),+),
                fields: &[$($crate::rest::frame::record::field!(Write, $name, $type, [$($meaning)+] $([$($rules)*])?),)+],
            };
        }

        $crate::rest::frame::record::read_from_body! {
            $(#[doc = $about])+
            $body of (Self::RECORD) { $($(#[doc = $meaning])+ $name: $type,)+ }
        }
    };
}

/// Filters of a list, or options of an action in its address. A value that was not sent, or is empty, is `None`.
macro_rules! query {
    (
        $(#[doc = $about:literal])+
        $query:ident { $(
            $(#[doc = $meaning:literal])+ $name:ident: $type:ty $([$($rules:tt)*])?
        ),+ $(,)? }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Default)]
        pub(crate) struct $query {
            $($(#[doc = $meaning])+ pub(crate) $name: Option<$type>,)+
        }

        impl $query {
            const RECORD: $crate::rest::frame::field::Record = $crate::rest::frame::field::Record {
                name: stringify!($query),
                meaning: concat!($($about),+),
                fields: &[$($crate::rest::frame::record::field!(Query, $name, $type, [$($meaning)+] $([$($rules)*])?),)+],
            };
        }

        impl $crate::rest::frame::input::Input for $query {
            fn inputs() -> $crate::rest::frame::input::Inputs {
                $crate::rest::frame::input::Inputs { query: Self::RECORD.fields.to_vec(), ..Default::default() }
            }

            fn read(
                given: &$crate::rest::frame::input::Given,
            ) -> Result<Self, $crate::rest::frame::input::FieldErrors> {
                let mut reader = $crate::rest::frame::input::Reader::of_query(&given.query, &Self::RECORD);
                let read = Self { $($name: reader.take(stringify!($name)),)+ };
                reader.done(read)
            }
        }
    };
}

/// One entry of a table.
macro_rules! field {
    ($place:ident, $name:ident, $type:ty, [$($meaning:literal)+] $([$($rule:ident($($argument:expr),*)),* $(,)?])?) => {
        $crate::rest::frame::field::Field::new::<$type>(
            stringify!($name),
            concat!($($meaning),+),
            $crate::rest::frame::field::Place::$place,
        )$($(.$rule($($argument),*))*)?
    };
}

/// The half of a record that is read from a body.
macro_rules! read_from_body {
    (
        $(#[doc = $about:literal])+
        $body:ident of ($record:expr) { $($(#[doc = $meaning:literal])+ $name:ident: $type:ty,)* }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $body {
            $($(#[doc = $meaning])+ pub(crate) $name: Option<$type>,)*
        }

        impl $crate::rest::frame::input::Element for $body {
            const RECORD: &'static $crate::rest::frame::field::Record = &$record;

            fn of(
                value: &serde_json::Value,
                is_partial: bool,
            ) -> Result<Self, $crate::rest::frame::input::FieldErrors> {
                let record = <Self as $crate::rest::frame::input::Element>::RECORD;
                let mut reader = $crate::rest::frame::input::Reader::of_body(value, is_partial, record)?;
                let read = Self { $($name: reader.take(stringify!($name)),)* };
                reader.done(read)
            }
        }

        impl $crate::rest::frame::input::Input for $body {
            fn inputs() -> $crate::rest::frame::input::Inputs {
                let record = <Self as $crate::rest::frame::input::Element>::RECORD;
                let body = Some($crate::rest::frame::input::BodyShape::One(record));
                $crate::rest::frame::input::Inputs { body, ..Default::default() }
            }

            fn read(
                given: &$crate::rest::frame::input::Given,
            ) -> Result<Self, $crate::rest::frame::input::FieldErrors> {
                <Self as $crate::rest::frame::input::Element>::of(&given.body, given.is_partial)
            }
        }
    };
}

pub(crate) use {body, field, query, read_from_body, record, view};
