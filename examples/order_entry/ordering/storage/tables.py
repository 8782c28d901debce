"""The tables. Instants are in UTC."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """Apart from the tables of `tool_layer`."""


class ItemRow(Base):
    __tablename__ = "items"

    code: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str]
    reading: Mapped[str]
    english_name: Mapped[str]
    pack_size: Mapped[str]
    units: Mapped[Any] = mapped_column(JSON)
    """A list."""
    usual_maximum: Mapped[int]


class OrderRequestRow(Base):
    __tablename__ = "order_requests"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int]
    status: Mapped[str] = mapped_column(String(20))
    idempotency_key: Mapped[str] = mapped_column(unique=True)
    """Made with the row and never changed: an order request is placed once at most."""
    order_number: Mapped[str]
    customer_number: Mapped[str] = mapped_column(String(40), index=True)
    payload: Mapped[Any] = mapped_column(JSON)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class JudgementRow(Base):
    __tablename__ = "judgements"
    __table_args__ = (UniqueConstraint("order_request_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    order_request_id: Mapped[int] = mapped_column(ForeignKey("order_requests.id"))
    version: Mapped[int]
    judgement: Mapped[Any] = mapped_column(JSON)
