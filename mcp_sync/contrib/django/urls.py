"""``path("mcp/", include("mcp_sync.contrib.django.urls"))``"""

from django.urls import path

from . import views

app_name = "mcp_sync"

urlpatterns = [
    path("", views.status, name="status"),
    path("status.json", views.status_json, name="status_json"),
    path("health/", views.health, name="health"),
]
