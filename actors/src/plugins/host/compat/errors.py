"""Exceptions that plugins catch."""


class NotSupported(Exception):
    """The plugin uses something that the gateway does not have."""

    def __init__(self, name):
        super().__init__(f"{name} is not supported by this gateway")
        self.name = name


class NotSupportedImport(NotSupported, ImportError):
    """The same for an import, so that a plugin with an alternative uses it."""


class NotSupportedAttribute(NotSupported, AttributeError):
    """The same for an attribute."""


for _kind in (NotSupportedImport, NotSupportedAttribute):
    _kind.__name__ = _kind.__qualname__ = "NotSupported"


class DatabaseError(Exception):
    """The gateway refused a request."""

    status = None
    body = None


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class DataError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class ImproperlyConfigured(Exception):
    pass


class FieldError(Exception):
    pass


class FieldDoesNotExist(Exception):
    pass


class ObjectDoesNotExist(Exception):
    pass


class MultipleObjectsReturned(Exception):
    pass


class PermissionDenied(DatabaseError):
    pass


class ValidationError(DatabaseError):
    @property
    def messages(self):
        return [str(self)]


class NotFound(DatabaseError, ObjectDoesNotExist):
    """The gateway has no such object."""


def error_of(status, body, request):
    """Returns the exception for an answer."""
    text = sentence(body)
    is_taken = any(it in text.lower() for it in ("unique", "already exists", "already in use", "is taken"))
    if status == 400:
        kind = IntegrityError if is_taken else ValidationError
    else:
        kind = {401: PermissionDenied, 403: PermissionDenied, 404: NotFound, 409: IntegrityError}.get(
            status, OperationalError
        )
    error = kind(f"{request}: {status} {text}"[:2000])
    error.status, error.body = status, body
    return error


def sentence(body):
    """Returns the texts of the body of a refusal."""
    if isinstance(body, dict):
        return "; ".join(
            sentence(value) if name in ("detail", "error", "non_field_errors") else f"{name}: {sentence(value)}"
            for name, value in body.items()
        )
    if isinstance(body, list):
        return " ".join(sentence(it) for it in body)
    return str(body)
