"""SQLAlchemy: tables made from classes, the object mapper, and what reflection reads back."""

import datetime
import decimal

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

print("SQLAlchemy", ".".join(sa.__version__.split(".")[:2]))


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(sa.String(50))
    born: Mapped[datetime.date | None]
    books: Mapped[list["Book"]] = relationship(back_populates="author")


class Book(Base):
    __tablename__ = "books"
    __table_args__ = (sa.UniqueConstraint("title", name="books_title"), sa.CheckConstraint("price >= 0", name="books_price"),
                      sa.Index("books_author", "author_id", "price"))
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("authors.id", ondelete="CASCADE", name="books_author_fk"))
    title: Mapped[str] = mapped_column(sa.Text)
    price: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2), server_default="0")
    author: Mapped[Author] = relationship(back_populates="books")


def try_(name, call):
    try:
        shown = call()
    except Exception as error:  # whatever reflection meets is what is looked for
        shown = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    print(f"{name}: {shown}")


for driver in ("psycopg", "psycopg2"):
    engine = sa.create_engine(f"postgresql+{driver}://")
    print(engine.dialect.driver)
    try_("create", lambda: Base.metadata.create_all(engine))
    try_("create again", lambda: Base.metadata.create_all(engine))
    with Session(engine) as session:
        session.add(Author(id=1, name="Ann", born=datetime.date(1970, 1, 2), books=[Book(id=1, title="First", price=decimal.Decimal("9.50"))]))
        session.commit()
        found = session.scalars(sa.select(Book).join(Author).where(Author.name == "Ann")).one()
        print(found.title, found.price, found.author.born)
        print(session.execute(sa.select(sa.func.count(), sa.func.max(Book.price))).one())
    with engine.connect() as connection:
        connection.execute(sa.insert(Author), [{"id": n, "name": f"author {n}"} for n in range(2, 302)])
        streamed = connection.execution_options(stream_results=True, max_row_buffer=50)
        result = streamed.execute(sa.select(Author.id).order_by(Author.id))
        print(result.fetchmany(2), sum(row.id for row in result))
        parts = streamed.execution_options(yield_per=100).execute(sa.select(Author.id).order_by(Author.id)).partitions()
        print([len(part) for part in parts])
        connection.rollback()
    inspector = sa.inspect(engine)
    try_("schemas", lambda: inspector.get_schema_names())
    try_("tables", lambda: inspector.get_table_names())
    try_("views", lambda: inspector.get_view_names())
    try_("has", lambda: (inspector.has_table("books"), inspector.has_table("nothing")))
    for table in ("authors", "books"):
        try_(f"{table} columns", lambda: [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(table)])
        try_(f"{table} primary key", lambda: inspector.get_pk_constraint(table))
        try_(f"{table} foreign keys", lambda: inspector.get_foreign_keys(table))
        try_(f"{table} indexes", lambda: inspector.get_indexes(table))
        try_(f"{table} unique", lambda: inspector.get_unique_constraints(table))
        try_(f"{table} checks", lambda: inspector.get_check_constraints(table))
    reflected = sa.MetaData()
    try_("reflect", lambda: reflected.reflect(engine))
    try_("reflected", lambda: sorted(reflected.tables))
    try_("drop", lambda: Base.metadata.drop_all(engine))
    engine.dispose()
