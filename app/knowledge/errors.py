"""What can be wrong with a document that somebody brings, in words for that person."""

from app.errors import Conflict, InvalidInput, NotFound


class UnsupportedFile(InvalidInput):
    """No parser takes this type of file."""

    code = "unsupported_file"


class FileTooLarge(InvalidInput):
    """The file is beyond the limit."""

    code = "file_too_large"


class NotText(InvalidInput):
    """The file's content is not what its name says."""

    code = "not_text"


class EmptyDocument(InvalidInput):
    """There is nothing in it to find."""

    code = "empty_document"


class DuplicateContent(Conflict):
    """The very same content is in the base already."""

    code = "duplicate_content"


class DocumentNotFound(NotFound):
    """No such document, or it has been deleted."""

    code = "document_not_found"


class DocumentMoved(Conflict):
    """The document is no longer in the state that was acted on."""

    code = "document_moved"
