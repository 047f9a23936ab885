//! What all resources do with records: find, render, create, change and delete them.

use route_frame::call::Call;
use route_frame::route::{Created, NoContent};
use server::noun::Noun;
use server::reply::Refusal;
use storage::{Record, Table, Write};

/// A record that an answer can contain.
pub(crate) trait Render {
    /// The object in the answer.
    type View;
    /// Everything besides the record that the view depends on, loaded once per request.
    type Lookup: Lookup;

    fn view(&self, lookup: &Self::Lookup) -> Self::View;
}

/// Data that views depend on.
pub(crate) trait Lookup: Sized {
    fn load(call: &Call) -> Result<Self, Refusal>;
}

/// For views that depend on their record only.
impl Lookup for () {
    fn load(_: &Call) -> Result<Self, Refusal> {
        Ok(())
    }
}

/// Whether the caller is an admin, for views that hide fields from others.
pub(crate) struct IsAdmin(pub(crate) bool);

impl Lookup for IsAdmin {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self(call.is_admin()))
    }
}

/// Replaces a value if the client sent one.
pub(crate) fn set<T>(value: &mut T, sent: Option<T>) {
    if let Some(sent) = sent {
        *value = sent;
    }
}

/// Makes a view. A name alone is a field that the record has under the same name; after the semicolon, further fields follow
/// with their values.
macro_rules! view_from {
    ($view:ident from $record:ident { $($same:ident),+; $($rest:tt)* }) => {
        $view {
            $($same: route_frame::value::Stored::from_stored(&$record.$same),)+
            $($rest)*
        }
    };
}
pub(crate) use view_from;

/// Replaces the fields that the edit has under the same names, if the client sent them.
macro_rules! set_fields {
    ($record:ident from $edit:ident: $($same:ident),+) => {$(
        $crate::record::set(
            &mut $record.$same,
            $edit.$same.map(route_frame::value::Stored::into_stored),
        );
    )+};
}
pub(crate) use set_fields;

/// Replaces a text if the client sent one. Both `null` and an empty text remove it.
pub(crate) fn set_text(text: &mut Option<String>, sent: Option<Option<String>>) {
    set(text, sent.map(|it| it.filter(|it| !it.is_empty())));
}

/// Refuses with 400 and this message if the condition holds.
pub(crate) fn refuse_if(condition: bool, message: &str) -> Result<(), Refusal> {
    if condition { Err(Refusal::bad_request(message)) } else { Ok(()) }
}

/// The steps of handlers with records.
pub(crate) trait RecordCall {
    /// Returns the view of one record.
    fn render<T: Render>(&self, record: &T) -> Result<T::View, Refusal>;

    /// Returns the view of the record whose id is in the path.
    fn retrieve<T>(&self, table: &Table<T>) -> Result<T::View, Refusal>
    where
        T: Record + Render + Noun;

    /// Writes a new record, which `make` builds from its id.
    fn create<T, F>(&self, make: F) -> impl Future<Output = Result<Created<T::View>, Refusal>> + Send
    where
        T: Record + Render + Send + 'static,
        F: FnOnce(&mut Write<'_>, u32) -> Result<T, Refusal> + Send + 'static;

    /// Changes the record whose id is in the path.
    fn update<T, F>(&self, change: F) -> impl Future<Output = Result<T::View, Refusal>> + Send
    where
        T: Record + Render + Noun + Send + 'static,
        F: FnOnce(&mut Write<'_>, &mut T) -> Result<(), Refusal> + Send + 'static;

    /// Deletes the record whose id is in the path, unless `check` refuses.
    fn delete<T, F>(&self, check: F) -> impl Future<Output = Result<NoContent, Refusal>> + Send
    where
        T: Record + Noun,
        F: FnOnce(&Write<'_>, &T) -> Result<(), Refusal> + Send + 'static;
}

impl RecordCall for Call {
    fn render<T: Render>(&self, record: &T) -> Result<T::View, Refusal> {
        Ok(record.view(&T::Lookup::load(self)?))
    }

    fn retrieve<T>(&self, table: &Table<T>) -> Result<T::View, Refusal>
    where
        T: Record + Render + Noun,
    {
        let record = table.get(self.id()?).ok_or_else(Refusal::unknown::<T>)?;
        self.render(&**record)
    }

    async fn create<T, F>(&self, make: F) -> Result<Created<T::View>, Refusal>
    where
        T: Record + Render + Send + 'static,
        F: FnOnce(&mut Write<'_>, u32) -> Result<T, Refusal> + Send + 'static,
    {
        let record = self.write(move |write| {
            let id = write.next_id::<T>()?;
            let record = make(write, id)?;
            write.put(&record)?;
            Ok(record)
        });
        Ok(Created(self.render(&record.await?)?))
    }

    async fn update<T, F>(&self, change: F) -> Result<T::View, Refusal>
    where
        T: Record + Render + Noun + Send + 'static,
        F: FnOnce(&mut Write<'_>, &mut T) -> Result<(), Refusal> + Send + 'static,
    {
        let id = self.id()?;
        let record = self.write(move |write| {
            let mut record = find::<T>(write, id)?;
            change(write, &mut record)?;
            write.put(&record)?;
            Ok(record)
        });
        self.render(&record.await?)
    }

    async fn delete<T, F>(&self, check: F) -> Result<NoContent, Refusal>
    where
        T: Record + Noun,
        F: FnOnce(&Write<'_>, &T) -> Result<(), Refusal> + Send + 'static,
    {
        let id = self.id()?;
        self.write(move |write| {
            check(write, &find::<T>(write, id)?)?;
            write.remove::<T>(id)?;
            Ok(NoContent)
        })
        .await
    }
}

/// Returns the record with this id, for a write that changes or removes it.
pub(crate) fn find<T: Record + Noun>(write: &Write<'_>, id: u32) -> Result<T, Refusal> {
    write.get(id)?.ok_or_else(Refusal::unknown::<T>)
}
